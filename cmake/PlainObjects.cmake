# What a sanitized build needn't compile anew: code that isn't sanitized, as objects of another build directory.
set(PACELINE_PLAIN_OBJECTS "" CACHE PATH "Build directory of a release build with tests, whose objects of tests' own code \
and of plain kernels this sanitized build links (make asan: build/release)")
set(PACELINE_PLAIN_MODULES "" CACHE STRING "Modules that a sanitized build leaves plain, and untested, as objects of \
PACELINE_PLAIN_OBJECTS (make test: those that only users' own commands run)")
# Tests that are compiled anew all the same: they read memory that only sanitized code may not (tensor), or instantiate
# the modules' own code (cuda).
set(PACELINE_OWN_TEST_OBJECTS cuda tensor)

# Writes the paths of a target's objects to objects/<target>.txt.
function(paceline_offer_objects target)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/objects/${target}.txt" CONTENT "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
endfunction()

# Sets `result` to the objects that the other build offered for that target.
function(paceline_take_objects result target)
  set(list "${PACELINE_PLAIN_OBJECTS}/objects/${target}.txt")
  if(NOT EXISTS "${list}")
    message(FATAL_ERROR "${list} doesn't exist: PACELINE_PLAIN_OBJECTS names a build with PACELINE_TESTS=ON")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" objects)
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${result} "${objects}" PARENT_SCOPE)
endfunction()
