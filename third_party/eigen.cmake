# Defines Eigen3::Eigen: from the system, or from the PyPI package cmeel-eigen of the Python environment that builds.
find_package(Eigen3 3.4 QUIET NO_MODULE)
if(NOT TARGET Eigen3::Eigen)
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c
              "import importlib.metadata as m; print(m.distribution('cmeel-eigen').locate_file('cmeel.prefix'))"
      OUTPUT_VARIABLE eigen_prefix
      OUTPUT_STRIP_TRAILING_WHITESPACE
      ERROR_QUIET)
    if(eigen_prefix)
      find_package(Eigen3 3.4 QUIET NO_MODULE PATHS "${eigen_prefix}" NO_DEFAULT_PATH)
    endif()
  endif()
endif()
if(NOT TARGET Eigen3::Eigen)
  message(FATAL_ERROR "halosvm needs Eigen 3.4: install it (Debian: libeigen3-dev, vcpkg: eigen3), run "
                      "'pip install cmeel-eigen', or name its place with -DEigen3_DIR=...")
endif()
