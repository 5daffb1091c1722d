package keyspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

func TestNames(t *testing.T) {
	good := []string{"a", "orders:42", "{t}job", "x{a}", "{a}:{b}", "mit Leerzeichen", "schlüssel", strings.Repeat("x", keyspace.MaxLength)}
	for _, name := range good {
		require.NoError(t, keyspace.CheckName(name), name)
	}
	bad := []string{"", "{}x", "a{}", "a}b", "a{b", "{{a}}", "{a}}", "}a{", "\xff", strings.Repeat("x", keyspace.MaxLength+1)}
	for _, name := range bad {
		require.ErrorIs(t, keyspace.CheckName(name), fault.ErrInvalid, name)
	}
}

func TestKeys_share_one_slot(t *testing.T) {
	for _, name := range []string{"a", "orders:42", "{t}job", "x{a}", "{a}:{b}", "schlüssel"} {
		k, err := keyspace.Naming{}.Keys(name)
		require.NoError(t, err)
		require.Equal(t, keyspace.Slot(k.Key), keyspace.Slot(k.Channel), name)
		require.Equal(t, keyspace.Slot(k.Key), keyspace.Slot(k.Token()), name)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a{b}c")
	f.Fuzz(func(t *testing.T, name string) {
		k, err := keyspace.Naming{Prefix: "p:"}.Keys(name)
		if err != nil {
			return
		}
		require.Equal(t, keyspace.Slot(k.Key), keyspace.Slot(k.Channel))
		require.Equal(t, keyspace.Slot(k.Key), keyspace.Slot(k.Token()))
	})
}

func TestKeys_are_mapped(t *testing.T) {
	k, err := keyspace.Naming{Prefix: "app:"}.Keys("job")
	require.NoError(t, err)
	names := func(k *keyspace.Keys) []string { return append(k.Alone(), k.Name, k.Key, k.Channel, k.Token()) }
	channel := "redisson_lock__channel:{app:job}"
	require.Equal(t, []string{"app:job", "job", "app:job", channel, "redisson_lock_token:{app:job}"}, names(k))
	k, err = keyspace.Naming{Map: func(string) string { return "{t}mapped" }}.Keys("job")
	require.NoError(t, err)
	channel = "redisson_lock__channel:{t}mapped"
	require.Equal(t, []string{"{t}mapped", "job", "{t}mapped", channel, "redisson_lock_token:{t}mapped"}, names(k))
	_, err = keyspace.Naming{Map: func(string) string { return "{}" }}.Keys("job")
	require.ErrorIs(t, err, fault.ErrInvalid)
}
