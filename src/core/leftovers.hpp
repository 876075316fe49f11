// Removes temporary files and folders that killed processes left behind.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/descriptor.hpp"

namespace graft {

/// Locks an open temporary file until its descriptor is closed, at the latest by the end of the process.
/// remove_leftovers() in other processes does not remove a locked file. Does nothing on a file system without locks.
void lock_temporary(int descriptor);

/// Marks a folder as temporary with a locked file in it. The lock lasts as long as the returned descriptor is open.
/// Folders without such a file are never removed, whatever their names, because they may belong to the user.
[[nodiscard]] Descriptor mark_temporary(const std::filesystem::path& folder);
/// Removes the mark from a folder that is to be kept.
void unmark_temporary(const std::filesystem::path& folder);

/// Removes the files and the marked folders in `folder` whose names `is_temporary` accepts, that belong to this user,
/// that no process has locked, and that were last changed at least a minute ago: a process locks its files right after
/// it creates them. Entries that cannot be removed stay, without an error. Links are neither followed nor removed.
void remove_leftovers(const std::filesystem::path& folder, const std::function<bool(std::string_view)>& is_temporary);

}  // namespace graft
