# libedit, with wide characters: Libedit::libedit.
find_path(LIBEDIT_INCLUDE_DIR histedit.h)
find_library(LIBEDIT_LIBRARY edit)
mark_as_advanced(LIBEDIT_INCLUDE_DIR LIBEDIT_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libedit REQUIRED_VARS LIBEDIT_LIBRARY LIBEDIT_INCLUDE_DIR)
if(Libedit_FOUND AND NOT TARGET Libedit::libedit)
  add_library(Libedit::libedit UNKNOWN IMPORTED)
  set_target_properties(Libedit::libedit PROPERTIES
    IMPORTED_LOCATION "${LIBEDIT_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LIBEDIT_INCLUDE_DIR}")
endif()
