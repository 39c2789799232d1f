# gen_add_emulated(<target> <sources…>): an object library of host and device code for the emulator: .cu files are
# compiled as C++, with cuda/device showing its emulated side.
function(gen_add_emulated target)
  add_library(${target} OBJECT ${ARGN})
  foreach(source IN LISTS ARGN)
    if(source MATCHES "\\.cu$")
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
    endif()
  endforeach()
  target_compile_definitions(${target} PUBLIC GEN_CUDA_EMULATED)
  target_compile_options(${target} PUBLIC "SHELL:-iquote ${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC gen_settings Threads::Threads)
endfunction()
