# cmake --install: libraries, headers, the bundled models, the CMake package and generate.pc. The program
# installs itself (examples/cli).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/generate)

install(TARGETS generate EXPORT generate_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS)
# A package of its own: whoever links the shared library needs none of the libraries behind it.
install(TARGETS generate_static EXPORT generate_static
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS)
foreach(kind shared static)
  install(EXPORT generate_${kind} NAMESPACE generate:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/generateConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generateConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generateConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generateConfig.cmake
  ${PROJECT_BINARY_DIR}/generateConfigVersion.cmake DESTINATION ${package_dir})

# The .pc file finds its prefix from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /x)
configure_file(${PROJECT_SOURCE_DIR}/pkgconfig/generate.pc.in ${PROJECT_BINARY_DIR}/generate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generate.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(file story.gguf draft.gguf heldout.txt)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/demo_model/${file}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/generate OPTIONAL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
