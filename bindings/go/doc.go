// SPDX-License-Identifier: Apache-2.0

// Package generate is text generation with GGUF models: the Go side of libgenerate.
//
//	model, err := generate.LoadModel("story.gguf")
//	…
//	defer model.Close()
//	generator, err := model.NewGenerator()
//	…
//	defer generator.Close()
//	result, err := generator.Generate(ctx, "Once upon a time", generate.WithMaxTokens(100))
//	fmt.Println(result.Text)
//
// A Generator and what is said to be for any number of goroutines may be shared; generations that run at the same time
// share the model's forward passes. A Session is a conversation, a Stream a generation piece by piece, a Request one of many
// that run together. Contexts end what generates within one token, also within a long prompt.
//
// What has a Close must be closed: there are no finalisers. The order does not matter, nor does closing again, or while
// another goroutine is inside a call. OpenObjects tells what was forgotten.
//
// All failures are an *Error, with a code and one line: errors.Is(err, generate.ErrContextFull).
package generate
