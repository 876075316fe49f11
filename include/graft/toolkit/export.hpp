// Marks the symbols that libgraft.so exports.
#pragma once

/// Marks a function or class that applications use; all other symbols of the library are hidden.
#define GRAFT_API __attribute__((visibility("default")))
