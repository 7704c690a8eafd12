# Sets HALOSVM_ISAS, the instruction sets that the extension is built for, from the option HALOSVM_ISA_VARIANTS, and the
# flags of each: "baseline" has none, and is all that other compilers and processors than x86-64's have.
include(CheckCXXSourceCompiles)

set(HALOSVM_FLAGS_avx2 -march=x86-64-v3)

# Level 1 to 4 of x86-64 that this processor reaches; 0 for others, and where what is built runs elsewhere.
function(halosvm_processor_level level)
  set(${level} 0 PARENT_SCOPE)
  if(NOT CMAKE_CROSSCOMPILING)
    # Asked each time: the folder may have come from another machine.
    unset(HALOSVM_PROCESSOR_LEVEL CACHE)
    try_run(HALOSVM_PROCESSOR_LEVEL compiled "${CMAKE_CURRENT_BINARY_DIR}/processor_level"
            "${CMAKE_CURRENT_SOURCE_DIR}/cmake/processor_level.cpp"
            CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${CMAKE_CURRENT_SOURCE_DIR}/bindings")
    if(compiled AND HALOSVM_PROCESSOR_LEVEL MATCHES "^[0-4]$")
      set(${level} ${HALOSVM_PROCESSOR_LEVEL} PARENT_SCOPE)
    endif()
    unset(HALOSVM_PROCESSOR_LEVEL CACHE)
  endif()
endfunction()

set(known baseline)
if(NOT MSVC)
  set(CMAKE_REQUIRED_FLAGS ${HALOSVM_FLAGS_avx2})
  check_cxx_source_compiles("
    #ifndef __x86_64__
    #error \"another architecture\"
    #endif
    int main() { return 0; }" HALOSVM_COMPILER_KNOWS_avx2)
  unset(CMAKE_REQUIRED_FLAGS)
  if(HALOSVM_COMPILER_KNOWS_avx2)
    list(APPEND known avx2)
  endif()
endif()

if(HALOSVM_ISA_VARIANTS STREQUAL "all")
  set(HALOSVM_ISAS ${known})
elseif(HALOSVM_ISA_VARIANTS STREQUAL "native")
  halosvm_processor_level(level)
  if(level GREATER_EQUAL 3 AND "avx2" IN_LIST known)
    set(HALOSVM_ISAS avx2)
  else()
    set(HALOSVM_ISAS baseline)
  endif()
else()
  set(HALOSVM_ISAS ${HALOSVM_ISA_VARIANTS})
  list(REMOVE_DUPLICATES HALOSVM_ISAS)
  set(unknown ${HALOSVM_ISAS})
  list(REMOVE_ITEM unknown ${known})
  if(unknown OR NOT HALOSVM_ISAS)
    message(FATAL_ERROR "HALOSVM_ISA_VARIANTS is \"${HALOSVM_ISA_VARIANTS}\"; with this compiler it can be native, all, "
                        "or a list of: ${known}")
  endif()
endif()
list(JOIN HALOSVM_ISAS ", " isas)
message(STATUS "Instruction sets of the extension: ${isas}")

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
