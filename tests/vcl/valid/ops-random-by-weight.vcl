vcl 4.0;
import directors;
backend old { .host = "192.0.2.104"; .port = "80"; }
backend new_one { .host = "192.0.2.105"; .port = "80"; }
sub vcl_init {
	new mix = directors.random();
	mix.add_backend(old, 9.0);
	mix.add_backend(new_one, 1.0);	# a tenth of the traffic
}
sub vcl_backend_fetch {
	set bereq.backend = mix.backend();
}
