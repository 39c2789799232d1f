# Tests of src/model/gguf.
set(gguf_writer ${PROJECT_SOURCE_DIR}/tests/support/gguf_writer.cpp)
foreach(one file hostile metadata vocab)
  gen_add_test(NAME gguf_${one}_test ROOM gguf SOURCES gguf_${one}_test.cpp ${gguf_writer} LABELS short)
endforeach()
