package bench;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** What is to be measured. Times are in milliseconds. */
record Order(String workload, String address, long warmup, long time, long lease, int many) {
    /** How long clients that share threads wait for a reply, in milliseconds: with the default of 3 s, some give up. */
    private static final int SMALL_TIMEOUT = 10_000;

    static Order parse(String[] args) {
        return new Order(args[0], args[1], Long.parseLong(args[2]), Long.parseLong(args[3]), Long.parseLong(args[4]),
                Integer.parseInt(args[5]));
    }

    /** Opens a client with connections of its own and Redisson's defaults. */
    RedissonClient open() {
        return Redisson.create(config());
    }

    private Config config() {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(lease);
        config.useSingleServer().setAddress("redis://" + address);
        return config;
    }

    /**
     * Opens clients with few connections, which share the threads that one client has by default. With the defaults, 400
     * clients would have 10,000 connections and 19,000 threads.
     */
    RedissonClient[] openSmall(int n) {
        EventLoopGroup loops = new NioEventLoopGroup(32);
        ExecutorService executor = Executors.newFixedThreadPool(16);
        RedissonClient[] clients = new RedissonClient[n];
        for (int i = 0; i < n; i++) {
            Config config = config();
            config.setEventLoopGroup(loops);
            config.setExecutor(executor);
            config.useSingleServer().setConnectionMinimumIdleSize(1).setConnectionPoolSize(2)
                    .setTimeout(SMALL_TIMEOUT);
            clients[i] = Redisson.create(config);
        }
        return clients;
    }

    RedissonClient[] open(int n) {
        RedissonClient[] clients = new RedissonClient[n];
        for (int i = 0; i < n; i++) {
            clients[i] = open();
        }
        return clients;
    }
}
