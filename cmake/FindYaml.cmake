# libyaml: Yaml::yaml.
find_path(YAML_INCLUDE_DIR yaml.h)
find_library(YAML_LIBRARY yaml)
mark_as_advanced(YAML_INCLUDE_DIR YAML_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Yaml REQUIRED_VARS YAML_LIBRARY YAML_INCLUDE_DIR)
if(Yaml_FOUND AND NOT TARGET Yaml::yaml)
  add_library(Yaml::yaml UNKNOWN IMPORTED)
  set_target_properties(Yaml::yaml PROPERTIES
    IMPORTED_LOCATION "${YAML_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${YAML_INCLUDE_DIR}")
endif()
