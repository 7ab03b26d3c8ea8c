# src/server/page, carried by the binary: page_files.inc names its files for src/server/page_files.cc.

function(paceline_embed_page)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/server/page/*")
  set(list "")
  set(number 0)
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    string(APPEND list "PAGE_FILE(${number}, \"/page/${name}\", \"${file}\")\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT "${PACELINE_GENERATED_DIR}/page_files.inc" CONTENT "${list}" @ONLY)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/server/page_files.cc"
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON OBJECT_DEPENDS "${files};${PACELINE_GENERATED_DIR}/page_files.inc")
endfunction()
