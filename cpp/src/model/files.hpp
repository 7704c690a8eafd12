/// \file
/// Files as a whole: a path and a text in, and a file that is complete out, or the reason why there is none.
#pragma once

#include <string>

namespace halosvm::files {

/// Writes a file so that it appears under its name when it is complete: a call that is interrupted or fails leaves an
/// earlier file as it was. What is replaced gives the new file its permissions; of a symbolic link it is what the link
/// points to. What is no regular file, such as a pipe, is written as it is.
/// \throws std::runtime_error "cannot write <path>: <reason>".
void write(const std::string& path, const std::string& text);

/// The bytes of a file. \throws std::runtime_error "cannot read <path>: <reason>".
std::string read(const std::string& path);

}  // namespace halosvm::files
