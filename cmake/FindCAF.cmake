# Finds CAF, the C++ Actor Framework, and defines CAF::core, CAF::io, CAF::openssl for the components asked for.
#
# CAF 0.18 and newer brings a package configuration with these targets; it is taken when present. Older ones, like
# 0.17.6 of Debian 12, are headers and libraries only. Set CAF_ROOT for another place, CAF_NO_CONFIG to skip the
# package configuration. Sets CAF_FOUND, CAF_VERSION and CAF_<component>_FOUND.
#
# Imported targets put their headers among the system headers, so CAF's warnings are not ours.

include(FindPackageHandleStandardArgs)

if(NOT CAF_NO_CONFIG)
  set(_caf_wanted "")
  set(_caf_optional "")
  foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
    if(CAF_FIND_REQUIRED_${_caf_component})
      list(APPEND _caf_wanted ${_caf_component})
    else()
      list(APPEND _caf_optional ${_caf_component})
    endif()
  endforeach()
  find_package(CAF ${CAF_FIND_VERSION} CONFIG QUIET COMPONENTS ${_caf_wanted} OPTIONAL_COMPONENTS ${_caf_optional})
  if(CAF_FOUND AND TARGET CAF::core)
    find_package_handle_standard_args(CAF CONFIG_MODE HANDLE_COMPONENTS)
    return()
  endif()
endif()

find_path(CAF_INCLUDE_DIR caf/config.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)

# "#define CAF_VERSION 1706" means 0.17.6: two digits each for minor and patch.
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_define REGEX "^#[ ]*define CAF_VERSION [0-9]+")
  if(_caf_define MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR _caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR _caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

foreach(_caf_component IN ITEMS core ${CAF_FIND_COMPONENTS})
  find_library(CAF_${_caf_component}_LIBRARY caf_${_caf_component})
  mark_as_advanced(CAF_${_caf_component}_LIBRARY)
  if(CAF_${_caf_component}_LIBRARY)
    set(CAF_${_caf_component}_FOUND TRUE)
  endif()
endforeach()

find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_core_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION HANDLE_COMPONENTS)

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(_caf_component IN ITEMS core ${CAF_FIND_COMPONENTS})
    if(CAF_${_caf_component}_FOUND AND NOT TARGET CAF::${_caf_component})
      add_library(CAF::${_caf_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_caf_component} PROPERTIES
        IMPORTED_LOCATION "${CAF_${_caf_component}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}")
    endif()
  endforeach()
  set_property(TARGET CAF::core PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads)
  if(TARGET CAF::io)
    set_property(TARGET CAF::io PROPERTY INTERFACE_LINK_LIBRARIES CAF::core)
  endif()
  if(TARGET CAF::openssl)
    find_package(OpenSSL REQUIRED)
    set_property(TARGET CAF::openssl PROPERTY INTERFACE_LINK_LIBRARIES CAF::io OpenSSL::SSL OpenSSL::Crypto)
  endif()
endif()
