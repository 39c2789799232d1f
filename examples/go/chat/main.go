// SPDX-License-Identifier: Apache-2.0

// Talks: a line from you, an answer as it is made. chat MODEL.gguf
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"

	"libgenerate.dev/generate"
)

func main() {
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
	generator, err := model.NewGenerator(generate.WithContextPolicy("shift", 4))
	if err != nil {
		return err
	}
	defer generator.Close()
	session, err := generator.NewSession()
	if err != nil {
		return err
	}
	defer session.Close()
	// Control-C ends the answer that is being made, and only then the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	in := bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); in.Scan() && ctx.Err() == nil; fmt.Print("\n> ") {
		turn, err := model.FormatChat([]generate.Message{{Role: "user", Text: in.Text()}}, true)
		if err != nil {
			return err
		}
		tokens, err := model.Tokenizer().Encode(turn, generate.ParseSpecial)
		if err != nil {
			return err
		}
		if err := session.AppendTokens(ctx, tokens); err != nil {
			return err
		}
		stream, err := session.Stream(ctx, "", generate.WithTemperature(0.7), generate.WithMaxTokens(200))
		if err != nil {
			return err
		}
		if _, err := stream.WriteTo(os.Stdout); err != nil {
			return err
		}
	}
	return in.Err()
}
