package latchkey

// Members returns the holds of the members of a [MultiLock] or [RedLock], and nil for other holds.
// Those of a MultiLock are in the order of their keys, each lock once, and include the members of a
// MultiLock inside it. Those of a RedLock are in the order of NewRedLock. An element is nil if that
// member has not been acquired. A member that was lost stays in the list, with its [Hold.Err],
// until it is acquired again. Members sends nothing to the servers.
//
// Use the members to read: Name, [Hold.Token], Owner, Err, ValidFor. The whole renews and releases
// them. A member that you unlock counts as lost.
func (h *Hold) Members() []*Hold { return h.inner().latestMembers() }

// Member returns the hold of the member with that name, or nil if there is none; a nil Hold behaves
// like a released one. A member may itself be a group, such as a [RedLock] in a [MultiLock]: Member
// searches its members as well. If several members have the name, as those of a RedLock do, Member
// returns the first that is still held.
//
//	token := hold.Member("account:1").Token() // of a FencedLock in a MultiLock
func (h *Hold) Member(name string) *Hold {
	var found *Hold
	for _, m := range h.Members() {
		if m.Name() != name {
			m = m.Member(name)
		}
		if m.Err() == nil {
			return m
		}
		if found == nil {
			found = m
		}
	}
	return found
}
