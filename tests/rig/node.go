package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// askPatience is how long a node of a topology may take to answer the rig.
const askPatience = time.Second

// node is a server of a topology, with a connection that uses only this server.
type node struct {
	*Server
	client rueidis.Client
}

// rigName is the name of connections that belong to the rig, not to a test.
const rigName = "latchkey-rig"

func newNode(p *localProcess) (*node, error) {
	client, err := single(p.addr())
	if err != nil {
		return nil, err
	}
	return &node{p.server(), client}, nil
}

// single opens a connection to one server, even if that is part of a topology.
func single(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ClientName: rigName,
		ForceSingleClient: true, DisableCache: true, PipelineMultiplex: -1,
		ReadBufferEachConn: 16 << 10, WriteBufferEachConn: 16 << 10, RingScaleEachConn: 8, // there are many
	})
}

func (n *node) close() {
	n.client.Close()
	n.Server.close()
}

// up reports whether the process can answer.
func (n *node) up() bool { return !n.process.ended() && !n.process.paused }

// ask runs a command whose reply is text.
func (n *node) ask(words ...string) (string, error) {
	text, err := n.do(words...).ToString()
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", n.Addr(), strings.Join(words, " "), err)
	}
	return text, nil
}

func (n *node) do(words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(background(), askPatience)
	defer cancel()
	return n.client.Do(ctx, n.client.B().Arbitrary(words[0]).Args(words[1:]...).Build())
}

// replication returns the fields of INFO replication.
func (n *node) replication() (map[string]string, error) {
	text, err := n.ask("INFO", "replication")
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields, err
}

// leaders returns the masters among the nodes. It fails if another node has no link to its master.
func leaders(nodes []*node) (masters []*node, err error) {
	for _, n := range nodes {
		fields, err := n.replication()
		switch {
		case err != nil:
			return nil, err
		case fields["role"] == "master":
			masters = append(masters, n)
		case fields["master_link_status"] != "up":
			return nil, fmt.Errorf("%s has no link to its master", n.Addr())
		}
	}
	return masters, nil
}

// until waits for a condition outside a test, for as long as a start may take.
func until(what string, check func() error) error {
	deadline := time.Now().Add(startPatience)
	for {
		complaint := check()
		if complaint == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s; last seen: %w", startPatience, what, complaint)
		}
		time.Sleep(pollEvery)
	}
}
