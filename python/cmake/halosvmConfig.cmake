# The CMake package in the Python package: compiles the core with the project that asks for it.
if(NOT TARGET halosvm::halosvm)
  add_subdirectory("${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_BINARY_DIR}/halosvm" EXCLUDE_FROM_ALL)
endif()
