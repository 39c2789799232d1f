# A user's project, copied to a place of its own as CMakeLists.txt.
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
set(CMAKE_C_STANDARD 11)
find_package(generate 0.1 REQUIRED COMPONENTS static)
add_executable(shared story.c)
target_link_libraries(shared PRIVATE generate::generate)
add_executable(static story.c)
target_link_libraries(static PRIVATE generate::generate_static)
