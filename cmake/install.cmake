# cmake --install: libraries, headers, the bundled models, documents, the CMake package and generate.pc. The programs
# install themselves (examples). Components are Debian's packages: runtime, dev, program; bindings have their own.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/generate)

install(TARGETS generate EXPORT generate_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
  FILE_SET HEADERS COMPONENT dev)
# A package of its own: whoever links the shared library needs none of the libraries behind it.
install(TARGETS generate_static EXPORT generate_static
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
foreach(kind shared static)
  install(EXPORT generate_${kind} NAMESPACE generate:: DESTINATION ${package_dir} COMPONENT dev)
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/generateConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generateConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generateConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generateConfig.cmake
  ${PROJECT_BINARY_DIR}/generateConfigVersion.cmake DESTINATION ${package_dir} COMPONENT dev)

# The .pc file finds its prefix from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /x)
# Not by the name of its description (Requires.private), which would have to be there for the shared library, too.
set(PC_PRIVATE "")
foreach(folder IN LISTS PCRE2_LIBRARY_DIRS)
  if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    string(APPEND PC_PRIVATE "-L${folder} ")
  endif()
endforeach()
string(APPEND PC_PRIVATE "-lpcre2-8")
configure_file(${PROJECT_SOURCE_DIR}/pkgconfig/generate.pc.in ${PROJECT_BINARY_DIR}/generate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generate.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

foreach(file story.gguf draft.gguf eagle3.gguf eagle.gguf heldout.txt)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/demo_model/${file}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/generate COMPONENT program OPTIONAL)
endforeach()
# All pages and examples that README.md points to, in the same places beside it.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING
  PATTERN "*.md")
foreach(language go java csharp)
  install(FILES ${PROJECT_SOURCE_DIR}/bindings/${language}/README.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/bindings/${language} COMPONENT program)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/examples/chat.c ${PROJECT_SOURCE_DIR}/examples/markov.c ${PROJECT_SOURCE_DIR}/examples/prometheus.c
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)
foreach(language go java csharp python node)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/${language} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program
    FILES_MATCHING REGEX "\\.(go|mod|java|cs|py|mjs)$" PATTERN "__pycache__" EXCLUDE)
endforeach()
