package rig

import (
	"path/filepath"
	"strconv"

	"github.com/redis/rueidis"
)

// startAlone starts a cluster of one master, which is a new cluster whenever it is started. Until
// it is the master, it is reachable only through its socket.
func startAlone(settings []string) (p *localProcess, err error) {
	for range startTries {
		if p, err = tryAlone(settings); err == nil {
			return p, nil
		}
	}
	return nil, err
}

func tryAlone(settings []string) (*localProcess, error) {
	nodes, placeholders, err := seats(1, 0)
	if err != nil {
		return nil, err
	}
	p, err := nodes[0].process(settings)
	if err != nil {
		return nil, err
	}
	p.args = append(p.args, "--port", "0", "--unixsocket", p.socket(),
		"--cluster-port", strconv.Itoa(nodes[0].bus), "--cluster-announce-port", strconv.Itoa(p.port))
	p.prepare = func() error { return p.write("nodes.conf", nodes[0].configuration(nodes, placeholders)) }
	p.debut = func() error { return p.becomeMaster(placeholders[0]) }
	if err := p.start(); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

func (p *localProcess) socket() string { return filepath.Join(p.dir, "socket") }

// becomeMaster makes the server the master and then opens its port.
func (p *localProcess) becomeMaster(placeholder *seat) error {
	var n *node
	if err := until("a server answers at its socket", func() (err error) {
		n, err = p.behind()
		return err
	}); err != nil {
		return err
	}
	defer n.client.Close()
	err := n.takeOver()
	if err == nil {
		err = n.do("CLUSTER", "FORGET", placeholder.id).Error()
	}
	if err == nil {
		err = n.do("CONFIG", "SET", "port", strconv.Itoa(p.port)).Error()
	}
	return err
}

// behind connects through the socket.
func (p *localProcess) behind() (*node, error) {
	option := rueidis.MustParseURL("unix://" + p.socket())
	option.ForceSingleClient, option.DisableCache, option.ClientName = true, true, rigName
	client, err := rueidis.NewClient(option)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, err
	}
	return &node{p.server(), client}, nil
}
