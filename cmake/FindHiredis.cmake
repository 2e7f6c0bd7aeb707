# Finds hiredis, the C client library of Redis, and defines Hiredis::hiredis. hiredis 1.0 and newer brings a package
# configuration, Debian 12's 0.14 does not; both are headers and one library.

include(FindPackageHandleStandardArgs)

find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h)
find_library(HIREDIS_LIBRARY hiredis)
mark_as_advanced(HIREDIS_INCLUDE_DIR HIREDIS_LIBRARY)
find_package_handle_standard_args(Hiredis REQUIRED_VARS HIREDIS_LIBRARY HIREDIS_INCLUDE_DIR)

if(Hiredis_FOUND AND NOT TARGET Hiredis::hiredis)
  add_library(Hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(Hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION "${HIREDIS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${HIREDIS_INCLUDE_DIR}")
endif()
