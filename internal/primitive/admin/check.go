package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Check checks on the server what a client depends on, and returns all errors that it found.
func Check(ctx context.Context, c *core.Parts) error {
	lock := acquire.NewLock(c, lock.Reentrant, "latchkey:check:"+c.ID)
	if err := cmp.Or(lock.Names.Invalid, outcome.EndedBefore(ctx)); err != nil {
		return fault.Op("check", lock.Name(), err)
	}
	problems := errors.Join(
		checkLock(ctx, lock),
		checkPublish(ctx, c, lock.Names.Channel),
		checkSubscribe(ctx, c, lock.Names.Channel),
		checkEviction(ctx, c),
	)
	if problems == nil {
		return nil
	}
	return fault.Op("check", lock.Name(), problems)
}

func checkLock(ctx context.Context, lock *acquire.Lock) error {
	h, err := lock.Acquire(ctx, "try lock", false, nil)
	if err != nil {
		return fmt.Errorf("cannot acquire a lock: %w", withoutName(err))
	}
	return errors.Join(h.Extend(ctx, lock.Client.Config.Lease), h.Unlock(ctx))
}

// withoutName returns an error without the name of the lock, which the error of Check
// contains.
func withoutName(err error) error {
	if e, is := err.(*fault.OpError); is { //nolint:errorlint // the error itself
		return errors.Join(e.Causes...)
	}
	return err
}

func checkPublish(ctx context.Context, c *core.Parts, channel string) error {
	publish := c.Rueidis.B().Publish().Channel(channel).Message("0").Build
	if c.Notifier.Sharded {
		publish = c.Rueidis.B().Spublish().Channel(channel).Message("0").Build
	}
	err := c.Sender.QueryNodeOf(ctx, channel, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, publish())
	}).Error()
	if err != nil {
		return fmt.Errorf("the client cannot publish, so waiters poll: %w", err)
	}
	return nil
}

// checkSubscribe subscribes to a classic channel even if messages are sharded: the
// permissions are the same, and any connection will do.
func checkSubscribe(ctx context.Context, c *core.Parts, channel string) error {
	_, reply := c.Sender.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		conn, release := client.Dedicate()
		defer release()
		defer conn.Close()
		result := conn.Do(ctx, conn.B().Subscribe().Channel(channel).Build())
		if result.Error() == nil {
			result = conn.Do(ctx, conn.B().Subscribe().Channel(c.Notifier.BeatName).Build())
		}
		return result
	})
	err := reply.Error()
	if err != nil {
		return fmt.Errorf("the client cannot subscribe, so waiters poll: %w", err)
	}
	return nil
}

// checkEviction reports a server that evicts keys when its memory is full. The volatile
// policies evict keys with an expiry, and every lock has one.
func checkEviction(ctx context.Context, c *core.Parts) error {
	_, reply := c.Sender.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Info().Section("memory").Build())
	})
	info, err := reply.ToString()
	if err != nil || strings.Contains(info, "maxmemory:0\r") {
		return nil //nolint:nilerr // a server that does not answer INFO is not reported
	}
	_, policy, found := strings.Cut(info, "maxmemory_policy:")
	policy, _, _ = strings.Cut(policy, "\r")
	if found && policy != "noeviction" {
		return fmt.Errorf("the server may evict locks that are held: maxmemory-policy is %s, not noeviction", policy)
	}
	return nil
}
