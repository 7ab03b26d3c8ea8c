# base/version.h in the build tree: written now, and again before each build when `git describe` has changed.
# As a script (cmake -P) it only writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(
    COMMAND git -c safe.directory=* -C "${SOURCE_DIR}" describe --always --dirty --tags
    OUTPUT_VARIABLE PACELINE_GIT_DESCRIBE OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(PACELINE_GIT_DESCRIBE "")
  endif()
  configure_file("${SOURCE_DIR}/src/base/version.h.in" "${HEADER}" @ONLY)
  return()
endif()

set(PACELINE_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(write_version
    "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DHEADER=${PACELINE_GENERATED_DIR}/base/version.h"
    "-DPACELINE_VERSION=${PROJECT_VERSION}"
    "-DPACELINE_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -P "${CMAKE_CURRENT_LIST_FILE}")
execute_process(COMMAND ${write_version} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(paceline_version
  COMMAND ${write_version}
  BYPRODUCTS "${PACELINE_GENERATED_DIR}/base/version.h"
  COMMENT "" VERBATIM)
