package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// A wait and then a hold are children of the span in the context of the Lock call.
func TestSpansOfALock(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	ctx, parent := b.tracers.Tracer("test").Start(t.Context(), "request")
	other, err := server.Client().NewLock("job").Lock(ctx)
	require.NoError(t, err)
	const busy = 50 * time.Millisecond
	client := b.client(server, latchkey.Options{})
	goroutines(t).Go(func() {
		assert.Eventually(t, func() bool { return client.Waiting()[latchkey.KindLock] == 1 }, soon, time.Millisecond)
		time.Sleep(busy) // the span of the wait lasts that long
		assert.NoError(t, other.Unlock(context.Background()))
	})
	hold, err := client.NewLock("job").Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Unlock(t.Context()))
	b.await(t, latchkey.EventReleased)

	wait, held := b.span(t, "latchkey.wait", "acquired"), b.span(t, "latchkey.hold", "released")
	for _, span := range []interface{ EndTime() time.Time }{wait, held} {
		assert.False(t, span.EndTime().IsZero())
	}
	assert.Equal(t, parent.SpanContext().SpanID(), wait.Parent().SpanID())
	assert.Equal(t, parent.SpanContext().SpanID(), held.Parent().SpanID())
	assert.Equal(t, parent.SpanContext().TraceID(), held.SpanContext().TraceID())
	assert.Contains(t, wait.Attributes(), latchkeyotel.KindKey.String("lock"))
	assert.GreaterOrEqual(t, wait.EndTime().Sub(wait.StartTime()), busy/2)
	assert.False(t, held.EndTime().Before(wait.EndTime()))
	assert.Equal(t, codes.Unset, wait.Status().Code)
}

// The span of a lost hold is an error, and has the renewals that failed.
func TestSpanOfALoss(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	began := time.Now()
	hold, err := b.client(server, quick).NewLock("job").Lock(t.Context())
	require.NoError(t, err)
	server.Refuse("LOADING Redis is loading the dataset in memory")
	<-hold.Lost()
	b.await(t, latchkey.EventLost)
	span := b.span(t, "latchkey.hold", "lost")
	assert.Equal(t, codes.Error, span.Status().Code)
	require.NotEmpty(t, span.Events())
	assert.Equal(t, "latchkey.renewal_failed", span.Events()[0].Name)
	assert.Contains(t, span.Events()[0].Attributes, latchkeyotel.OutcomeKey.String("unavailable"))
	assert.True(t, span.StartTime().Before(span.Events()[0].Time))
	assert.False(t, span.StartTime().Before(began.Add(-time.Second)))
	assert.False(t, span.Parent().IsValid())
}

// A busy lock is not an error of a span. A server that is gone is one.
func TestSpansOfThoseThatGaveUp(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	_, err := server.Client().NewLock("busy").Lock(t.Context())
	require.NoError(t, err)
	client := b.client(server, quick)
	_, err = client.NewLock("busy").TryLock(t.Context())
	require.Error(t, err)
	b.await(t, latchkey.EventGaveUp)
	assert.Equal(t, codes.Unset, b.span(t, "latchkey.wait", "not_acquired").Status().Code)
	server.Stop()
	_, err = client.NewLock("busy").TryLock(t.Context())
	require.Error(t, err)
	b.await(t, latchkey.EventGaveUp)
	assert.Equal(t, codes.Error, b.span(t, "latchkey.wait", "unavailable").Status().Code)
}

// The attributes and error texts of spans contain names only with WithNames.
func TestSpansHaveNamesByChoice(t *testing.T) {
	const name = "orders:42"
	for _, names := range []bool{false, true} {
		var options []latchkeyotel.Option
		if names {
			options = append(options, latchkeyotel.WithNames())
		}
		b, server := newBench(t, options...), latchkeytest.NewServer(t)
		client := b.client(server, quick)
		hold, err := client.NewLock(name).Lock(t.Context())
		require.NoError(t, err)
		_, err = client.NewMutex(name).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrWrongKind)
		server.Refuse("LOADING " + name)
		<-hold.Lost()
		b.await(t, latchkey.EventLost)
		assert.Len(t, b.spans.Ended(), 3)
		for _, span := range b.spans.Ended() {
			text := fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Events())
			assert.Equal(t, names, strings.Contains(text, name), text)
		}
		text := b.span(t, "latchkey.wait", "wrong_kind").Status().Description
		assert.Equal(t, names, strings.Contains(text, name), text)
	}
}
