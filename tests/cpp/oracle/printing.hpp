/// \file
/// What a comparison of matrices shows when it fails, compiled once; all tests see it in their precompiled header.
#pragma once

#include "halosvm/core/types.hpp"

#include <doctest/doctest.h>

namespace doctest {

template <>
struct StringMaker<halosvm::Matrix> {
  static String convert(const halosvm::ConstMatrixRef& matrix);
};

template <>
struct StringMaker<halosvm::Vector> : StringMaker<halosvm::Matrix> {};

template <class T>
struct StringMaker<Eigen::Transpose<T>> : StringMaker<halosvm::Matrix> {};

}  // namespace doctest
