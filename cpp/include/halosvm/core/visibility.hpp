/// \file
/// What a shared library of the core shows: the declarations of the public headers. All else stays inside.
#pragma once

/// \def HALOSVM_PUBLIC_BEGIN
/// Before the public declarations of a header. CMake defines HALOSVM_SHARED for a shared library and its users.
/// \def HALOSVM_PUBLIC_END
/// Behind them.
#if defined(HALOSVM_SHARED) && defined(__GNUC__)
#define HALOSVM_PUBLIC_BEGIN _Pragma("GCC visibility push(default)")
#define HALOSVM_PUBLIC_END _Pragma("GCC visibility pop")
#else
#define HALOSVM_PUBLIC_BEGIN
#define HALOSVM_PUBLIC_END
#endif
