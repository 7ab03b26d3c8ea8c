# Compute capabilities of kernels, from PACELINE_CUDA_ARCHITECTURES: a list, `all`, or `native` for the GPUs of this machine.
set(PACELINE_ALL_CUDA_ARCHITECTURES 80 89 90a)

# Sets `out` to the capabilities of the machine's GPUs, without the dot; empty without a GPU.
function(paceline_native_cuda_architectures out)
  set(found "")
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE lines RESULT_VARIABLE result ERROR_QUIET TIMEOUT 30)
  if(result EQUAL 0)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${lines}")
    foreach(capability IN LISTS capabilities)
      string(REPLACE "." "" architecture "${capability}")
      if(architecture STREQUAL "90")
        set(architecture 90a) # with the instructions that Hopper alone has
      endif()
      list(APPEND found "${architecture}")
    endforeach()
    list(REMOVE_DUPLICATES found)
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Sets `out` to a list; empty for `native` without a GPU.
function(paceline_cuda_architectures asked out)
  if(asked STREQUAL "native")
    paceline_native_cuda_architectures(found)
  elseif(asked STREQUAL "all")
    set(found ${PACELINE_ALL_CUDA_ARCHITECTURES})
  else()
    set(found ${asked})
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  paceline_cuda_architectures("${ASKED}" found) # for a test
  message("${found}")
endif()
