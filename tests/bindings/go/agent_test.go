// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"libgenerate.dev/generate"
)

type cityArguments struct {
	City string `json:"city"`
	Days int    `json:"days,omitempty"`
}

func weatherTools(t *testing.T) *generate.Tools {
	tools := must(generate.NewTools())
	t.Cleanup(func() { tools.Close() })
	err := generate.AddTool(tools, "weather", "The weather of a city.", func(_ context.Context, a cityArguments) (map[string]any, error) {
		if a.City == "" {
			return nil, errors.New("which city?")
		}
		return map[string]any{"city": a.City, "celsius": 18 + a.Days}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func call(name, arguments string) string {
	return fmt.Sprintf(`{"name": %q, "arguments": %s}`, name, arguments)
}

func TestToolsAreFunctions(t *testing.T) {
	tools := weatherTools(t)
	check := func(name, arguments, output string, isError bool) {
		t.Helper()
		got := must(tools.Call(generate.ToolCall{ID: "c", Name: name, Arguments: json.RawMessage(arguments)}))
		if got.CallID != "c" || got.IsError != isError || !strings.Contains(got.Output, output) {
			t.Errorf("%s %s gave %+v", name, arguments, got)
		}
	}
	check("weather", `{"city": "Oslo", "days": 2}`, `{"celsius":20,"city":"Oslo"}`, false)
	check("weather", `{"city": ""}`, "which city?", true)
	check("weather", `{}`, `"city" is missing`, true)
	check("nothing", `{}`, `tool "nothing" not found`, true)
	if err := tools.Add("panics", "", "", func(context.Context, generate.ToolCall) (string, error) { panic("no") }); err != nil {
		t.Fatal(err)
	}
	check("panics", "", "panicked: no", true)
	if tools.Len() != 2 || !strings.Contains(must(tools.Describe()), `"panics"`) || !strings.Contains(must(tools.Get("weather")), "The weather") {
		t.Error(must(tools.Describe()))
	}
	if err := tools.Add("panics", "", "", func(context.Context, generate.ToolCall) (string, error) { return "", nil }); err == nil {
		t.Error("a name was taken twice")
	}
	if err := tools.Remove("panics"); err != nil {
		t.Error(err)
	}
	if got := must(generate.ParseToolCalls("", call("f", `{"a": 1}`))); !strings.Contains(got, `"id":"call_0"`) {
		t.Error(got)
	}
	if got := must(generate.FormatToolResult(generate.ToolResult{CallID: "c", Output: "o"})); got != `{"tool_call_id":"c","output":"o","is_error":false}` {
		t.Error(got)
	}
}

func TestToolsFromManyGoroutines(t *testing.T) {
	tools := weatherTools(t)
	var all sync.WaitGroup
	for i := 0; i < 32; i++ {
		i := i
		all.Add(1)
		go func() {
			defer all.Done()
			got, err := tools.Call(generate.ToolCall{Name: "weather", Arguments: json.RawMessage(fmt.Sprintf(`{"city": "c%d"}`, i))})
			if err != nil || !strings.Contains(got.Output, fmt.Sprintf(`"c%d"`, i)) {
				t.Errorf("%d: %+v %v", i, got, err)
			}
		}()
	}
	all.Wait()
	tools.Close()
	if _, err := tools.Call(generate.ToolCall{Name: "weather"}); !errors.Is(err, generate.ErrClosed) {
		t.Error(err)
	}
}

func TestAgentStepsWithGivenOutputs(t *testing.T) {
	tools := weatherTools(t)
	agent := must(generate.NewAgent(tools, generate.WithSystem("Be brief."), generate.WithAgentSetting("tool_threads", "2")))
	defer agent.Close()
	if err := agent.Chat().Add("user", "Is it warm?"); err != nil {
		t.Fatal(err)
	}
	if must(agent.StepOutput(ctx, call("weather", `{"city": "Rome"}`)+call("weather", `{"city": "Oslo"}`))) || !must(agent.StepOutput(ctx, "It is.")) {
		t.Error("the second step is the last")
	}
	run := must(agent.Describe())
	if len(run.Steps) != 2 || run.StopReason != "no_tools" || run.FinalOutput != "It is." || run.Steps[0].Results[1].Output != `{"celsius":18,"city":"Oslo"}` {
		t.Errorf("%+v", run)
	}
	if got := must(agent.Chat().Describe()); !strings.Contains(got, "Be brief.") || !strings.Contains(got, "call_1") {
		t.Error(got)
	}
	if _, err := agent.Run(ctx, "x", nil); err == nil {
		t.Error("there is no model")
	}
	if err := agent.Reset(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(must(generate.DescribeAgentOptions()), "max_steps") {
		t.Error("no options")
	}
}

func TestAgentRuns(t *testing.T) {
	tools := must(generate.NewTools())
	defer tools.Close()
	g := must(story.NewGenerator())
	defer g.Close()
	sampling := generate.WithAgentSampling(generate.WithTemperature(0), generate.WithMaxTokens(4))
	agent := must(g.NewAgent(tools, sampling))
	defer agent.Close()
	if err := agent.Chat().SetTemplate("chatml"); err != nil {
		t.Fatal(err)
	}
	kinds := map[generate.AgentEventKind]int{}
	said := ""
	result, err := agent.Run(ctx, "Hi", func(e generate.AgentEvent) bool {
		kinds[e.Kind]++
		if e.Kind == generate.AgentText {
			said += e.Text
		}
		return true
	})
	if err != nil || said != result.Text || kinds[generate.AgentStepEnded] != 1 {
		t.Errorf("%v %q %q %v", err, said, result.Text, kinds)
	}
	if _, err := agent.Run(ctx, "Hi", func(generate.AgentEvent) bool { return false }); !errors.Is(err, generate.ErrCancelled) {
		t.Error(err)
	}
	if err := agent.Chat().Add("user", "And?"); err != nil {
		t.Fatal(err)
	}
	if !must(agent.Step(ctx)) {
		t.Error("a step without calls is the last")
	}
	if err := agent.Chat().Add("user", "And?"); err != nil {
		t.Fatal(err)
	}
	must(agent.GoOn(ctx, nil))
	supervisor := must(generate.NewSupervisor())
	defer supervisor.Close()
	if err := supervisor.Add("first", "", agent); err != nil {
		t.Fatal(err)
	}
	if err := supervisor.SetBudget(100); err != nil {
		t.Fatal(err)
	}
	must(supervisor.Run(ctx, "Hi", nil))
	if got := must(supervisor.Describe()); !strings.Contains(got, `"budget":100`) {
		t.Error(got)
	}
}

// A context that ends cancels the agent, and its tool is told.
func TestAgentIsCancelledInATool(t *testing.T) {
	tools := must(generate.NewTools())
	defer tools.Close()
	begun := make(chan struct{})
	told := false
	err := tools.Add("waits", "", "", func(ctx context.Context, _ generate.ToolCall) (string, error) {
		close(begun)
		<-ctx.Done()
		told = true
		return "told", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	agent := must(generate.NewAgent(tools))
	defer agent.Close()
	short, cancel := context.WithCancel(context.Background())
	go func() {
		<-begun
		time.Sleep(10 * time.Millisecond)
		cancel()
	}()
	if _, err := agent.StepOutput(short, call("waits", "{}")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if run := must(agent.Describe()); !told || run.StopReason != "cancelled" || run.Steps[0].Results[0].Output != "told" {
		t.Errorf("%v %+v", told, run)
	}
}
