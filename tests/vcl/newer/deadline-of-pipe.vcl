vcl 4.1;

# Needs `bereq.task_deadline` and `param.pipe_task_deadline`.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Upgrade) {
        return (pipe);
    }
}

sub vcl_pipe {
    if (bereq.url ~ "^/chat/") {
        set bereq.task_deadline = 8h;
    } elsif (bereq.url ~ "^/debug/") {
        unset bereq.task_deadline;
    } else {
        set bereq.task_deadline = param.pipe_task_deadline;
    }
}
