// SPDX-License-Identifier: Apache-2.0

// Continues many prompts together: batch MODEL.gguf PROMPT…
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"libgenerate.dev/generate"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: batch MODEL.gguf PROMPT…")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, prompts []string) error {
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
	requests := make([]generate.Request, len(prompts))
	for i, prompt := range prompts {
		requests[i] = generate.Request{
			Prompt:   prompt,
			Sampling: []generate.SamplingOption{generate.WithTemperature(0.7), generate.WithSeed(1), generate.WithMaxTokens(24)},
			Deadline: 30 * time.Second,
		}
	}
	results, err := generator.Batch(context.Background(), requests)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Err != nil {
			fmt.Printf("%s: %v\n", prompts[i], result.Err)
			continue
		}
		fmt.Println(prompts[i] + strings.Join(strings.Fields(result.Text), " "))
	}
	return nil
}
