# What `cmake --install` puts in place for find_package(halosvm): the library, its headers and its CMake package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/halosvm")
install(TARGETS halosvm EXPORT halosvmTargets COMPONENT cpp
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/halosvm COMPONENT cpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT halosvmTargets NAMESPACE halosvm:: COMPONENT cpp DESTINATION "${package_dir}")

configure_package_config_file(cmake/halosvmConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/halosvmConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/halosvmConfigVersion.cmake"
                                 COMPATIBILITY SameMajorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/halosvmConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/halosvmConfigVersion.cmake"
        COMPONENT cpp DESTINATION "${package_dir}")
