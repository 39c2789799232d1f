# Tests of src/model/gguf.
foreach(one file hostile metadata vocab vocab_kinds)
  gen_add_test(NAME gguf_${one}_test ROOM gguf SOURCES gguf_${one}_test.cpp LIBS test_gguf_writer)
endforeach()
