package bench;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** What is to be measured. Times are in milliseconds. */
record Order(String workload, String address, long warmup, long time, long lease, int many) {
    static Order parse(String[] args) {
        return new Order(args[0], args[1], Long.parseLong(args[2]), Long.parseLong(args[3]), Long.parseLong(args[4]),
                Integer.parseInt(args[5]));
    }

    /** Opens a client with connections of its own and Redisson's defaults. */
    RedissonClient open() {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(lease);
        config.useSingleServer().setAddress("redis://" + address);
        return Redisson.create(config);
    }

    RedissonClient[] open(int n) {
        RedissonClient[] clients = new RedissonClient[n];
        for (int i = 0; i < n; i++) {
            clients[i] = open();
        }
        return clients;
    }
}
