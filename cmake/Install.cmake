# The binary, the combined static library Paceline::paceline, and what `make install` puts beside them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(GLOB main CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/main.cc")
if(main AND TARGET paceline_cli)
  add_executable(paceline ${main})
  paceline_target_defaults(paceline)
  target_link_libraries(paceline PRIVATE paceline_cli fmt::fmt)
  if(PACELINE_PLAIN_OBJECTS AND PACELINE_PLAIN_MODULES)
    paceline_link_modules_first(paceline paceline_cli)
  endif()
  install(TARGETS paceline RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
endif()

# libpaceline.a and libpaceline.so: the objects of every module up to the facade and the API in C.
set(library_objects "")
set(library_links Threads::Threads fmt::fmt)
foreach(module IN LISTS PACELINE_LAYERS)
  if(TARGET paceline_${module})
    get_target_property(type paceline_${module} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND library_objects $<TARGET_OBJECTS:paceline_${module}>)
    endif()
    list(APPEND library_links ${PACELINE_LINKS_${module}})
  endif()
  if(module STREQUAL "capi")
    break()
  endif()
endforeach()
foreach(target IN LISTS PACELINE_ISA_TARGETS)
  list(APPEND library_objects $<TARGET_OBJECTS:${target}>)
endforeach()
list(REMOVE_DUPLICATES library_links)

if(TARGET paceline_capi AND NOT PACELINE_SANITIZE)
  add_library(paceline_archive STATIC ${library_objects})
  set_target_properties(paceline_archive PROPERTIES OUTPUT_NAME paceline EXPORT_NAME paceline LINKER_LANGUAGE CXX)
  target_compile_features(paceline_archive INTERFACE cxx_std_20)
  target_include_directories(paceline_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(paceline_archive PRIVATE ${library_links})

  set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Paceline")
  # What it exports is the API in C alone.
  set(exports "${CMAKE_CURRENT_LIST_DIR}/libpaceline.map")
  add_library(paceline_shared SHARED ${library_objects})
  set(file_version ${PROJECT_VERSION})
  if(SKBUILD)
    set(file_version ${PROJECT_VERSION_MAJOR}) # a wheel has no links: one file
  endif()
  set_target_properties(paceline_shared PROPERTIES OUTPUT_NAME paceline EXPORT_NAME shared LINKER_LANGUAGE CXX
    VERSION ${file_version} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS "${exports}")
  target_include_directories(paceline_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(paceline_shared PRIVATE ${library_links})
  target_link_options(paceline_shared PRIVATE "LINKER:--version-script=${exports}" "LINKER:--no-undefined")
  install(TARGETS paceline_shared EXPORT PacelineTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    COMPONENT runtime NAMELINK_COMPONENT development)
  file(RELATIVE_PATH PACELINE_PREFIX_FROM_PKGCONFIG "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/paceline.pc.in" "${PROJECT_BINARY_DIR}/paceline.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/paceline.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

  install(TARGETS paceline_archive EXPORT PacelineTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT PacelineTargets NAMESPACE Paceline:: DESTINATION "${package_dir}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/paceline" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/PacelineConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/PacelineConfig.cmake" INSTALL_DESTINATION "${package_dir}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/PacelineConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/PacelineConfig.cmake" "${PROJECT_BINARY_DIR}/PacelineConfigVersion.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/FindPcre2.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindUtf8proc.cmake"
    DESTINATION "${package_dir}")
endif()

# The man page and the completions say what the binary itself says about its options.
if(TARGET paceline AND Python3_Interpreter_FOUND AND NOT PACELINE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(docs_dir "${PROJECT_BINARY_DIR}/packaging")
  set(docs "${docs_dir}/paceline.1" "${docs_dir}/paceline.bash" "${docs_dir}/_paceline" "${docs_dir}/paceline.fish")
  add_custom_command(OUTPUT ${docs}
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/make_man_page.py" $<TARGET_FILE:paceline>
            "${docs_dir}/paceline.1"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/make_completions.py" $<TARGET_FILE:paceline>
            "${docs_dir}"
    DEPENDS paceline "${PROJECT_SOURCE_DIR}/tools/make_man_page.py" "${PROJECT_SOURCE_DIR}/tools/make_completions.py"
            "${PROJECT_SOURCE_DIR}/tools/cli_options.py"
    COMMENT "Man page and shell completions" VERBATIM)
  add_custom_target(paceline_docs ALL DEPENDS ${docs})
  install(FILES "${docs_dir}/paceline.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${docs_dir}/paceline.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
    RENAME paceline)
  install(FILES "${docs_dir}/_paceline" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${docs_dir}/paceline.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/models" DESTINATION "${CMAKE_INSTALL_DATADIR}/paceline" COMPONENT runtime OPTIONAL)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
