package pubsub

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// unwantedFor is how long a link keeps channels that nobody wants any more, or unwantedBeats
	// beats if that is shorter.
	unwantedFor   = 10 * time.Second
	unwantedBeats = 5
	// unwantedMost is how many such channels a link keeps, unless more are wanted.
	unwantedMost = 1000
	// renewedPerSecond bounds how many wanted channels are subscribed again because links are
	// replaced.
	renewedPerSecond = 1000
	// replaceTimeout is how long a link stays while the connection that is to replace it is being
	// opened.
	replaceTimeout = time.Second
)

// link is a subscription connection that is up.
//
// Nothing unsubscribes from a link. rueidis sends PING behind each UNSUBSCRIBE, and ends the
// process if the server refuses that: see docs/explain/rueidis.md. Channels that nobody wants any
// more end with their link. The last one ends it; if there are others, another link replaces it
// from time to time.
type link struct {
	number   uint64 // of the links of all listeners; subscriptions that have ended must not keep the link
	conn     rueidis.DedicatedClient
	lost     <-chan error
	openedAt time.Time
	unwanted map[string]struct{} // channels; used by the goroutine of the listener only
	close    func()

	unheardBeats atomic.Int32 // beats sent since the last one was received
	beatRefused  atomic.Bool  // the server does not permit the beat
	counted      atomic.Bool  // the server that receives the commands has counted it
	elsewhere    atomic.Bool  // the master has changed, and the new one does not count it
}

// open opens a link and subscribes to the channels that are wanted. Only then it closes the link
// that the new one replaces, if any, so that the server sees this client listen all the time.
func (l *listener) open(old *link) (*link, error) {
	client := l.client()
	if client == nil {
		l.end(old)
		return nil, errLink
	}
	k := l.dedicate(client, old)
	if k == nil {
		l.end(old)
		return nil, errLink
	}
	err := l.subscribeBeat(k)
	if err == nil {
		err = l.subscribeNew(k)
	}
	if err != nil {
		l.end(k)
		l.end(old)
		return nil, err
	}
	if old != nil {
		old.close()
	}
	return k, nil
}

// dedicate opens the connection of a link. If that takes long, it first ends the link that is to be
// replaced, which may have the only place in the pool of a borrowed client.
func (l *listener) dedicate(client rueidis.Client, old *link) *link {
	ended := make(chan struct{})
	late := time.AfterFunc(replaceTimeout, func() { l.end(old); close(ended) })
	conn, release := l.fromPool(client)
	if !late.Stop() {
		<-ended
	}
	if conn == nil {
		return nil
	}
	k := &link{number: l.links.Add(1), conn: conn, openedAt: time.Now(), unwanted: map[string]struct{}{}}
	k.close = sync.OnceFunc(func() {
		conn.Close() // first: to release an open connection would unsubscribe
		release()
	})
	k.lost = conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { l.onMessage(k, m.Channel, m.Message) },
		OnSubscription: l.onSubscription,
	})
	return k
}

// fromPool takes a connection out of the pool of a client. It waits for one until the listener is
// closed, and then returns nil.
func (l *listener) fromPool(client rueidis.Client) (rueidis.DedicatedClient, func()) {
	type pooled struct {
		rueidis.DedicatedClient
		release func()
	}
	taken := make(chan pooled, 1)
	go func() {
		conn, release := client.Dedicate()
		taken <- pooled{conn, release}
	}()
	select {
	case p := <-taken:
		return p.DedicatedClient, p.release
	case <-l.closed:
	}
	go func() { // the program has the whole pool
		p := <-taken
		p.Close()
		p.release()
	}()
	return nil, nil
}

// end ends a link that no other has replaced, and wakes all waiters.
func (l *listener) end(k *link) {
	if k == nil {
		return
	}
	for _, s := range l.snapshot() {
		s.lost()
	}
	k.close()
}

// crowded reports whether the link is to be replaced because of channels that nobody wants any
// more.
func (k *link) crowded(wanted int, interval time.Duration) bool {
	unwanted, longest := len(k.unwanted), min(unwantedFor, unwantedBeats*interval)
	switch {
	case unwanted == 0:
		return false
	case unwanted >= max(unwantedMost, wanted):
		return true
	}
	return time.Since(k.openedAt) > longest+time.Duration(wanted)*time.Second/renewedPerSecond
}
