// SPDX-License-Identifier: Apache-2.0

// Talks: a line from you, an answer as it is made. Control-C ends an answer. chat MODEL.gguf
package main

import (
	"bufio"
	"context"
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
	if len(os.Args) != 2 {
		log.Fatal("usage: chat MODEL.gguf")
	}
	model := must(generate.LoadModel(os.Args[1]))
	defer model.Close()
	generator := must(model.NewGenerator())
	defer generator.Close()
	chat := must(generate.NewChat(generate.Message{Role: "system", Text: "You tell stories."}))
	defer chat.Close()
	session := must(generator.NewChatSession(chat))
	defer session.Close()
	in := bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); in.Scan(); fmt.Print("\n> ") {
		answer(session, in.Text())
	}
}

// answer sends a message, and writes the answer as it comes.
func answer(session *generate.ChatSession, text string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	stream := must(session.Stream(ctx, text, generate.WithTemperature(0.7), generate.WithMaxTokens(200)))
	defer stream.Close()
	if _, err := stream.WriteTo(os.Stdout); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}
