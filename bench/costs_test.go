package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCosts(t *testing.T) {
	if _, err := serverProgram(); err != nil {
		t.Skip(err)
	}
	server, err := startServer(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, server.stop()) }()
	lines, err := countCosts(t.Context(), server.addr)
	require.NoError(t, err)
	t.Log("\n" + costTable(lines))
}
