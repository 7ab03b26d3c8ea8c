# PCRE2 with 8-bit code units: Pcre2::pcre2-8.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_LIBRARY pcre2-8)
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pcre2 REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR)
if(Pcre2_FOUND AND NOT TARGET Pcre2::pcre2-8)
  add_library(Pcre2::pcre2-8 UNKNOWN IMPORTED)
  set_target_properties(Pcre2::pcre2-8 PROPERTIES
    IMPORTED_LOCATION "${PCRE2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${PCRE2_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS PCRE2_CODE_UNIT_WIDTH=8)
endif()
