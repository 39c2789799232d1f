# The programs find library and models by their own place, in the build tree as where they are installed: no path of this
# machine is in them, and CMake, which leaves an empty element when it edits a path of libraries, has none to edit.
set(GEN_PROGRAM_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL lib)
  cmake_path(GET CMAKE_INSTALL_LIBDIR PARENT_PATH parent)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib ${PROJECT_BINARY_DIR}/${parent})
  file(CREATE_LINK ${PROJECT_BINARY_DIR}/lib ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR} SYMBOLIC)
endif()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DATADIR})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/examples/demo_model ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/generate SYMBOLIC)
