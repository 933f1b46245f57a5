// Chat is a terminal chat with the agent: it shows what waits for an approval and takes the answer.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc/codes"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

func main() {
	target := flag.String("target", "127.0.0.1:50051", "address of the agent, host:port")
	thread := flag.String("thread", "chat-"+time.Now().Format("20060102-150405"), "conversation to open or continue")
	tokenFile := flag.String("token-file", "", "file with a bearer token; none if empty")
	encrypted := flag.Bool("tls", false, "encrypt the connection, with the certificates the system trusts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var opts []client.Option
	if *tokenFile != "" {
		opts = append(opts, client.WithTokenFile(*tokenFile))
	}
	if *encrypted {
		opts = append(opts, client.WithTLS(nil))
	}
	if err := run(ctx, *target, *thread, opts); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, target, thread string, opts []client.Option) error {
	agent, err := client.NewAgent(target, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Close() }()
	shown, err := pending(ctx, agent, thread)
	if err != nil {
		return err
	}
	for line := range lines(ctx, os.Stdin) {
		if line == "" {
			continue
		}
		// what is sent with a card approves or rejects it if it is a clear yes or no, and is an ordinary message otherwise
		shown, err = turn(ctx, agent, client.Message{ThreadID: thread, Text: line, Shown: shown})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pending shows what already waits in the conversation and returns the newest card.
func pending(ctx context.Context, agent *client.Agent, thread string) (*client.Card, error) {
	cards, err := agent.PendingApprovals(ctx, thread)
	var failure *client.Error
	if errors.As(err, &failure) && failure.Code == codes.NotFound {
		return nil, nil // a new conversation
	}
	if err != nil || len(cards) == 0 {
		return nil, err
	}
	show(cards[0])
	return cards[0], nil
}

// turn sends a message, prints what happens, and returns the card that waits for an answer.
func turn(ctx context.Context, agent *client.Agent, message client.Message) (*client.Card, error) {
	var waits *client.Card
	for event, err := range agent.Stream(ctx, message) {
		if err != nil {
			return nil, err
		}
		switch detail := event.Detail.(type) {
		case *agentv1.RiskDecision:
			fmt.Printf("  · riskgate %s %s\n", detail.GetDecision(), detail.GetTool())
		case *agentv1.AssistantMessage:
			fmt.Println("agent ›", detail.GetText())
		case *agentv1.HumanMessage:
			fmt.Println(detail.GetDisplayName(), "›", detail.GetText())
		case *agentv1.RunFinished:
			if detail.GetStatus() == agentv1.RunStatus_RUN_STATUS_FAILED {
				fmt.Println("  · failed:", detail.GetReason())
			}
		case *client.Card:
			waits = detail
			show(detail)
		}
	}
	return waits, nil
}

func show(card *client.Card) {
	for _, one := range append([]*client.Card{card}, card.Also...) {
		fmt.Printf("  ? %s, risk %s\n", one.Tool, one.Risk)
		for _, argument := range one.Arguments {
			fmt.Printf("      %s = %s\n", argument.Path, string(argument.Display))
		}
	}
	fmt.Println("  ? answer yes or no")
}

// lines yields what is typed until the input or ctx ends.
func lines(ctx context.Context, input io.Reader) func(func(string) bool) {
	typed := make(chan string)
	go func() {
		defer close(typed)
		for scanner := bufio.NewScanner(input); scanner.Scan(); {
			select {
			case typed <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(yield func(string) bool) {
		for {
			fmt.Print("you › ")
			select {
			case line, ok := <-typed:
				if !ok || !yield(line) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
