# What `cmake --install` puts down: libraries, headers in their folders, and a package for find_package(zlink).

include(CMakePackageConfigHelpers)

list(JOIN zlink_caf_components " " zlink_caf_components)
set(zlink_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/zlink")

install(TARGETS zlink zlink_testing EXPORT zlink-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/zlink" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "precompiled.hpp" EXCLUDE)
install(EXPORT zlink-targets NAMESPACE zlink:: DESTINATION "${zlink_package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/zlink-config.cmake.in" zlink-config.cmake
  INSTALL_DESTINATION "${zlink_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(zlink-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/zlink-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/zlink-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindHiredis.cmake"
  DESTINATION "${zlink_package_dir}")
