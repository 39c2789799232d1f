// SPDX-License-Identifier: Apache-2.0

// Talks: a line from you, an answer as it is made. Control-C ends an answer. chat MODEL.gguf
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"libgenerate.dev/generate"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	model := must(generate.LoadModel(os.Args[1]))
	defer model.Close()
	generator := must(model.NewGenerator(generate.WithContextPolicy("shift", 4)))
	defer generator.Close()
	session := must(generator.NewSession())
	defer session.Close()
	in := bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); in.Scan(); fmt.Print("\n> ") {
		turn := must(model.FormatChat([]generate.Message{{Role: "user", Text: in.Text()}}, true))
		tokens := must(model.Tokenizer().Encode(turn, generate.ParseSpecial))
		if err := answer(session, tokens); err != nil && !errors.Is(err, context.Canceled) {
			log.Fatal(err)
		}
	}
}

func answer(session *generate.Session, turn []int32) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := session.AppendTokens(ctx, turn); err != nil {
		return err
	}
	stream, err := session.Stream(ctx, "", generate.WithTemperature(0.7), generate.WithMaxTokens(200))
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = stream.WriteTo(os.Stdout)
	return err
}
