/// \file
/// The text of the error that a call ends with.
#pragma once

#include <stdexcept>
#include <string>

namespace oracle {

/// what() of the std::invalid_argument that \p call throws, or "" when it returns.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// The argument that \p call refuses, the first word of its error; "" when it returns.
template <class Call>
std::string refused(const Call& call) {
  const std::string text = error_of(call);
  return text.substr(0, text.find(' '));
}

}  // namespace oracle
