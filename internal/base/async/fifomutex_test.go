package async

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFIFOMutex_is_first_come_first_served(t *testing.T) {
	var turn FIFOMutex
	require.NoError(t, turn.Lock(context.Background()))
	var order []int
	var waiting sync.WaitGroup
	for i := range 5 {
		granted := turn.enqueue(false)
		waiting.Go(func() {
			<-granted
			order = append(order, i)
			turn.Unlock()
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, turn.Lock(ctx), context.Canceled, "whoever leaves is skipped")
	turn.Unlock()
	waiting.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	require.True(t, turn.TryLock())
}

func TestFIFOMutex_granted_to_a_leaver_is_passed_on(t *testing.T) {
	var turn FIFOMutex
	require.True(t, turn.TryLock())
	leaver, next := turn.enqueue(false), turn.enqueue(false)
	turn.Unlock()
	<-leaver // granted, but its context ended at the same time
	turn.cancel(leaver)
	<-next
}

func TestFIFOMutex_is_lent_to_the_renewal_first(t *testing.T) {
	var turn FIFOMutex
	require.True(t, turn.TryLock())
	turn.Lend() // to nobody
	first, renewal := turn.enqueue(false), turn.enqueue(true)
	var order []string
	var waiting sync.WaitGroup
	for what, granted := range map[string]chan struct{}{"first": first, "renewal": renewal} {
		waiting.Go(func() {
			<-granted
			order = append(order, what)
			turn.Unlock()
		})
	}
	turn.Lend()
	order = append(order, "lender")
	turn.Unlock()
	waiting.Wait()
	require.Equal(t, []string{"renewal", "lender", "first"}, order)
	require.True(t, turn.TryLock())
}
