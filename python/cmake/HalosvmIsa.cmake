# Sets HALOSVM_ISAS, the instruction sets beyond the compiler's default that the extension is built for, and the flags
# of each: those that the compiler knows for x86-64, none elsewhere.
include(CheckCXXSourceCompiles)

set(HALOSVM_ISAS "")
set(HALOSVM_FLAGS_avx2 -march=x86-64-v3)

if(HALOSVM_ISA_VARIANTS AND NOT MSVC)
  set(CMAKE_REQUIRED_FLAGS ${HALOSVM_FLAGS_avx2})
  check_cxx_source_compiles("
    #ifndef __x86_64__
    #error \"another architecture\"
    #endif
    int main() { return 0; }" HALOSVM_COMPILER_KNOWS_avx2)
  if(HALOSVM_COMPILER_KNOWS_avx2)
    list(APPEND HALOSVM_ISAS avx2)
  endif()
  unset(CMAKE_REQUIRED_FLAGS)
endif()
list(JOIN HALOSVM_ISAS " " isas)
message(STATUS "Instruction sets of the extension: baseline ${isas}")

# Adds a static library of the core's sources, compiled with the given flags. Whatever links it is compiled with them
# too, so that one binary never holds inline functions and templates of different flags.
function(halosvm_add_core_variant target)
  get_target_property(sources halosvm SOURCES)
  get_target_property(folder halosvm SOURCE_DIR)
  list(TRANSFORM sources PREPEND "${folder}/")
  add_library(${target} STATIC ${sources})
  halosvm_core_properties(${target})
  halosvm_compile_options(${target})
  target_compile_options(${target} PUBLIC ${ARGN})
endfunction()
