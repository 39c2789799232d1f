// SPDX-License-Identifier: Apache-2.0

// Shows a story as it is made, and stops another one after a moment: stream MODEL.gguf
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"libgenerate.dev/generate"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: stream MODEL.gguf")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	model, err := generate.LoadModel(path)
	if err != nil {
		return err
	}
	defer model.Close()
	generator, err := model.NewGenerator()
	if err != nil {
		return err
	}
	defer generator.Close()

	stream, err := generator.Stream(context.Background(), "Once upon a time", generate.WithTemperature(0), generate.WithMaxTokens(40))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Next() {
		fmt.Print(stream.Token().Text)
	}
	fmt.Println()
	if stream.Err() != nil {
		return stream.Err()
	}

	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	result, err := generator.Generate(ctx, "The dog", generate.WithMaxTokens(1000), generate.WithIgnoreEOS(true))
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	fmt.Printf("stopped: %v; %d tokens by then\n", err, len(result.Tokens))
	return nil
}
