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
	generator := must(model.NewGenerator(generate.WithContextPolicy("shift", 4)))
	defer generator.Close()
	session := must(generator.NewSession())
	defer session.Close()
	var messages []generate.Message
	held, flags := "", generate.ParseSpecial|generate.AddBOS // held: the form of what the session holds
	in := bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); in.Scan(); fmt.Print("\n> ") {
		messages = append(messages, generate.Message{Role: "user", Text: in.Text()})
		all := must(model.FormatChat(messages, true))
		text := answer(session, must(model.Tokenizer().Encode(all[len(held):], flags)))
		held, flags = all+text, generate.ParseSpecial
		messages = append(messages, generate.Message{Role: "assistant", Text: text})
	}
}

func answer(session *generate.Session, turn []int32) string {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	must(0, session.AppendTokens(context.Background(), turn))
	stream := must(session.Stream(ctx, "", generate.WithTemperature(0.7), generate.WithMaxTokens(200)))
	defer stream.Close()
	if _, err := stream.WriteTo(os.Stdout); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
	// The form brings the end of a turn itself, whether the model or Control-C ended this one.
	if stream.Result().FinishReason == generate.FinishStopToken {
		must(0, session.Truncate(session.Length()-1))
	}
	return stream.Result().Text
}
