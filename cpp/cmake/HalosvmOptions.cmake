# What every build of the core has in common, whatever its compiler flags.
function(halosvm_core_properties target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp/include>
    $<INSTALL_INTERFACE:include>)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cpp/src")
  target_link_libraries(${target} PUBLIC Eigen3::Eigen Threads::Threads)
  target_compile_features(${target} PUBLIC cxx_std_17)
  # Eigen aligns to the widest vectors of a file's own flags, and its malloc and free differ with that. Matrices are
  # allocated on one side of the library's border and freed on the other: both sides must agree (core/types.hpp).
  target_compile_definitions(${target} PUBLIC EIGEN_MAX_ALIGN_BYTES=64)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    WINDOWS_EXPORT_ALL_SYMBOLS ON)
  # With CMAKE_UNITY_BUILD a folder is compiled as one unit: its files share the templates of Eigen that they use.
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    string(REGEX REPLACE "^.*src/" "" folder "${folder}")
    string(REPLACE "/" "_" folder "${folder}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_compile_definitions(${target} PUBLIC HALOSVM_SHARED)
  endif()
  # Parsing Eigen takes longer than compiling most files. clang-tidy cannot read another compiler's header.
  if(NOT CMAKE_CXX_CLANG_TIDY)
    target_precompile_headers(${target} PRIVATE
      <Eigen/Core> "${PROJECT_SOURCE_DIR}/cpp/src/linalg/products.hpp"
      <algorithm> <cmath> <functional> <memory> <string> <vector>)
  endif()
endfunction()

# Compiler flags of everything built here; none of them reaches those who link the library.
function(halosvm_compile_options target)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${HALOSVM_WERROR}>:/WX>)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic
    $<$<BOOL:${HALOSVM_WERROR}>:-Werror>
    # Let loops over sqrt and comparisons become vector code; results do not change.
    -fno-math-errno -fno-trapping-math)
endfunction()
