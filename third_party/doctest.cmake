# Defines doctest::doctest, the C++ tests' framework: MIT licence, one header, compiles faster than its rivals.
find_package(doctest 2.4 QUIET CONFIG)
if(NOT TARGET doctest::doctest)
  message(FATAL_ERROR "The C++ tests need doctest 2.4 (Debian: doctest-dev, Homebrew: doctest, vcpkg: doctest): "
                      "install it, name its place with -Ddoctest_DIR=..., or build with -DHALOSVM_BUILD_TESTS=OFF")
endif()
