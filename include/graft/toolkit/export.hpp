// What libgraft.so exports.
#pragma once

/// On every function and class that applications call; all other symbols of the library are hidden.
#define GRAFT_API __attribute__((visibility("default")))
