# src/kernels/cuda/code/kernels.cu, compiled by nvcc into a fat binary that kernel_binary.cc includes.

include(CudaArchitectures)

set(PACELINE_CUDA AUTO CACHE STRING
    "Compile the kernels for NVIDIA GPUs: ON, OFF, or AUTO (where nvcc 12 or newer is found; never in sanitized builds)")
set(PACELINE_CUDA_ARCHITECTURES all CACHE STRING
    "Compute capabilities to compile for, without the dot; all of them; or native, those of this machine's GPUs")
find_program(PACELINE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin
  DOC "NVIDIA's compiler")
mark_as_advanced(PACELINE_NVCC)

# Sets PACELINE_CUDA to ON or OFF, and nvcc_major.
macro(paceline_find_nvcc)
  set(nvcc_fault "")
  if(NOT PACELINE_NVCC)
    set(nvcc_fault "nvcc not found (PACELINE_NVCC)")
  else()
    execute_process(COMMAND "${PACELINE_NVCC}" --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    if(NOT nvcc_version MATCHES "release ([0-9]+)\\.")
      set(nvcc_fault "${PACELINE_NVCC} tells no version")
    elseif(CMAKE_MATCH_1 LESS 12)
      set(nvcc_fault "${PACELINE_NVCC} is of CUDA ${CMAKE_MATCH_1}, expected 12 or newer")
    endif()
    set(nvcc_major "${CMAKE_MATCH_1}")
  endif()
  if(PACELINE_CUDA STREQUAL "AUTO")
    if(nvcc_fault)
      message(STATUS "${nvcc_fault}, so PACELINE_CUDA is off")
      set(PACELINE_CUDA OFF)
    elseif(PACELINE_SANITIZE)
      set(PACELINE_CUDA OFF)
    else()
      set(PACELINE_CUDA ON)
    endif()
  elseif(PACELINE_CUDA AND nvcc_fault)
    message(FATAL_ERROR "PACELINE_CUDA is ON, but ${nvcc_fault}")
  endif()
endmacro()

# Gives paceline_kernels the fat binary. Native ones are left out where there is no GPU, unless PACELINE_CUDA is ON: then they
# are for another machine.
function(paceline_add_cuda_kernels)
  set(asked "${PACELINE_CUDA}")
  paceline_find_nvcc()
  if(PACELINE_CUDA)
    paceline_cuda_architectures("${PACELINE_CUDA_ARCHITECTURES}" architectures)
    if(NOT architectures AND asked STREQUAL "AUTO")
      message(STATUS "No GPU here, so PACELINE_CUDA is off (PACELINE_CUDA_ARCHITECTURES=all: for other machines)")
      set(PACELINE_CUDA OFF)
    elseif(NOT architectures)
      set(architectures ${PACELINE_ALL_CUDA_ARCHITECTURES})
    endif()
  endif()
  set(PACELINE_CUDA ${PACELINE_CUDA} PARENT_SCOPE)
  if(NOT PACELINE_CUDA)
    return()
  endif()
  set(source "${PROJECT_SOURCE_DIR}/src/kernels/cuda/code/kernels.cu")
  # A file for each choice: one that changes back compiles nothing.
  list(JOIN architectures "-" choice)
  set(binary "${PROJECT_BINARY_DIR}/generated/kernels-${choice}.fatbin")
  add_custom_command(OUTPUT "${binary}"
    COMMAND "${CMAKE_COMMAND}" "-DNVCC=${PACELINE_NVCC}" "-DSOURCE=${source}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/src"
            "-DBINARY=${binary}" "-DARCHITECTURES=${architectures}"
            -P "${PROJECT_SOURCE_DIR}/cmake/CompileKernels.cmake"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/cmake/CompileKernels.cmake"
    DEPFILE "${binary}.d" COMMENT "Kernels for NVIDIA GPUs" VERBATIM)
  list(JOIN architectures ", " listed)
  set(includer "${PROJECT_SOURCE_DIR}/src/kernels/cuda/kernel_binary.cc")
  set_source_files_properties("${includer}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON OBJECT_DEPENDS "${binary}"
    COMPILE_DEFINITIONS
    "PACELINE_KERNEL_BINARY=\"${binary}\";PACELINE_KERNEL_ARCHITECTURES=\"${listed}\";PACELINE_KERNEL_CUDA=${nvcc_major}")
  target_sources(paceline_kernels PRIVATE "${binary}")
endfunction()
