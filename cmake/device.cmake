# gen_add_device_objects(<variable> <sources…>): .cu files compiled by nvcc for GEN_CUDA_ARCHITECTURES, their host side with the
# warnings and marks of the rest; <variable> lists the objects. Commands, not CMake's language CUDA: flags of the project's
# other files would go to nvcc too, which knows few of them.
set(GEN_CUDA_ARCHITECTURES "75;80;86;89;90a;100;120;75-virtual;120-virtual" CACHE STRING
  "What device code is compiled for; with -virtual: kept as PTX, for devices that are not in the list")

function(gen_add_device_objects variable)
  set(flags -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler=-fPIC
    -Xcompiler=-fvisibility=hidden -Xcompiler=-fvisibility-inlines-hidden -Xcompiler=-ffp-contract=off
    -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
  if(GEN_HARDEN)
    list(APPEND flags -Xcompiler=-fstack-protector-strong)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      list(APPEND flags -Xcompiler=-fcf-protection=full)
    endif()
  endif()
  foreach(each IN LISTS GEN_CUDA_ARCHITECTURES)
    if(each MATCHES "^([0-9]+[af]?)-virtual$")
      list(APPEND flags -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
    elseif(each MATCHES "^[0-9]+[af]?$")
      list(APPEND flags -gencode=arch=compute_${each},code=sm_${each})
    else()
      message(FATAL_ERROR "GEN_CUDA_ARCHITECTURES names \"${each}\", which is not like 90a or 75-virtual")
    endif()
  endforeach()
  set(objects "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${path})
    set(object ${PROJECT_BINARY_DIR}/device/${name}.o)
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object} DEPENDS ${path} DEPFILE ${object}.d VERBATIM COMMENT "Device code ${name}"
      COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -MD -MF ${object}.d -c -o ${object} ${path})
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
